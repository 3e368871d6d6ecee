"""Incorrect decoders: joining, malformed bytes, changes to the text, special tokens, unknown ids."""

from __future__ import annotations

import codecs
import functools
import operator
import re
import unicodedata
from collections.abc import Iterable

from bpe_conformance.fixtures import unspell

from .correct import Encoder

# Joining


class TokensDecodedApart(Encoder):
    """Decodes each token separately, so that a character of several tokens becomes several U+FFFD."""

    clause = "DECODE-BYTES-1"
    fix = "Join the bytes first: b''.join(vocab[i] for i in ids).decode('utf-8', errors='replace')."
    evidence = "exo-explore/exo#1691, karpathy/nanochat#693; CS336 handout, problem unicode2"

    def decode(self, ids: Iterable[int]) -> str:
        return "".join([self.vocab[index].decode("utf-8", errors="replace") for index in ids])


class DecodedInWindows(Encoder):
    """Decodes 64 ids at a time and joins the texts, which breaks characters that span two windows."""

    clause = "DECODE-BYTES-1"
    fix = "Decode once, or use codecs.getincrementaldecoder('utf-8')('replace') across the windows."
    evidence = "feyninc/chonkie#629"

    def decode(self, ids: Iterable[int]) -> str:
        tokens = [self.vocab[index] for index in ids]
        windows = [b"".join(tokens[start : start + 64]) for start in range(0, len(tokens), 64)]
        return "".join(window.decode("utf-8", errors="replace") for window in windows)


class TokensJoinedBySpaces(Encoder):
    """Joins the tokens with spaces, as code for whole words does."""

    clause = "DECODE-BYTES-1"
    fix = "Join with nothing in between: spaces are part of the tokens."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b" ".join(self.vocab[index] for index in ids)


class IdsAsPlaces(Encoder):
    """Keeps the tokens in a list sorted by id and uses an id as the index; a gap shifts all later tokens."""

    clause = "DECODE-BYTES-1"
    fix = "Look ids up in a dict, or leave the indexes of missing ids empty."
    evidence = "one step from tokie 0.1.4, whose tables are as long as the number of entries"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = [self.vocab[index] for index in sorted(self.vocab)]
        return b"".join(tokens[index] for index in ids)


class OnlyBuiltTokensDecoded(Encoder):
    """Decodes with bytes and merges only, so that an entry that no merge creates raises KeyError."""

    clause = "DECODE-BYTES-1"
    fix = "Decode with the vocabulary, not with the merges."
    evidence = "minbpe and its descendants build their vocabulary from the merges"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        built = {bytes([byte]) for byte in range(256)} | {left + right for left, right in self.merges}
        built |= {token.encode("utf-8") for token in self.special}
        table = {index: token for index, token in self.vocab.items() if token in built}
        return b"".join(table[index] for index in ids)


class BytesFromText(Encoder):
    """Decodes ids to text and encodes that to get their bytes, which turns half a character into U+FFFD."""

    clause = "DECODE-BYTES-1"
    fix = "Return b''.join(vocab[i] for i in ids), and let decode call it."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return super().decode_bytes(ids).decode("utf-8", errors="replace").encode("utf-8")


class EmptyListNotDecoded(Encoder):
    """Adds the tokens with `reduce(operator.add, tokens)`, which has no start value for an empty list."""

    clause = "DECODE-EMPTY-1"
    fix = "Use b''.join(tokens)."
    evidence = "onnxruntime-extensions 0.15.2, @huggingface/tokenizers 0.2.0"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return functools.reduce(operator.add, [self.vocab[index] for index in ids])


class OnlyListsDecoded(Encoder):
    """Adds a list to the ids, or tests `isinstance(ids, list)`, so that a tuple of ids raises an error."""

    clause = "DECODE-SEQUENCE-1"
    fix = "Begin with ids = list(ids), or only iterate over them."

    def decode(self, ids: Iterable[int]) -> str:
        if not isinstance(ids, list):
            raise TypeError("ids must be a list")
        return super().decode(ids)


class NulAtTokenEndDropped(Encoder):
    """Keeps the tokens in a NumPy array of dtype S, which strips NULs at the end of a token."""

    clause = "DECODE-TEXT-1"
    fix = "Keep the tokens in a list, a dict or an array of dtype object."
    evidence = "numpy/numpy#25268"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab[index].rstrip(b"\0") for index in ids])


class TokenLengthsOfOneByte(Encoder):
    """Keeps the lengths of tokens in uint8, next to one array of all bytes: 256 becomes 0."""

    clause = "DECODE-BYTES-1"
    fix = "Use 32 bits for lengths and offsets."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = [self.vocab[index] for index in ids]
        return b"".join([token[: len(token) & 0xFF] for token in tokens])


# Malformed bytes


class MalformedBytesIgnored(Encoder):
    """Decodes with errors='ignore', which silences the exception and drops the bytes."""

    clause = "DECODE-UTF8-1"
    fix = "Decode with errors='replace'."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", errors="ignore")


class MalformedBytesRaise(Encoder):
    """Decodes strictly, which works for encoded text and raises for what a model may generate."""

    clause = "DECODE-UTF8-1"
    fix = "Decode with errors='replace'."
    evidence = "rustbpe 0.1.0, tinybpe 1.0.0, toktokenizer 0.2.0, pytorch-tokenizers 1.5.0"

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8")


class BytesAsLatin1(Encoder):
    """Makes one character of each byte, as `chr` and Latin-1 do, which restores ASCII only."""

    clause = "DECODE-BYTES-1"
    fix = "Decode the joined bytes as UTF-8."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("latin-1")


class Latin1AsFallback(Encoder):
    """Decodes strictly, and decodes the whole text as Latin-1 if any byte is malformed."""

    clause = "DECODE-UTF8-1"
    fix = "Decode with errors='replace' instead of catching UnicodeDecodeError."

    def decode(self, ids: Iterable[int]) -> str:
        try:
            return self.decode_bytes(ids).decode("utf-8")
        except UnicodeDecodeError:
            return self.decode_bytes(ids).decode("latin-1")


class OneReplacementPerByte(Encoder):
    """Writes one U+FFFD for each malformed byte, because it advances by one byte after an error."""

    clause = "DECODE-UTF8-1"
    fix = "Write one U+FFFD for each maximal subpart, as bytes.decode('utf-8', 'replace') does."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub("[\udc80-\udcff]", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape"))


class OneReplacementPerRun(Encoder):
    """Writes one U+FFFD for a whole run of malformed bytes, to spare readers a row of them."""

    clause = "DECODE-UTF8-1"
    fix = "Write one U+FFFD for each maximal subpart, as bytes.decode('utf-8', 'replace') does."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub("[\udc80-\udcff]+", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape"))


class AnnouncedLengthSkipped(Encoder):
    """Skips as many bytes as the lead byte announces if they are malformed, well-formed ones among them."""

    clause = "DECODE-UTF8-1"
    fix = "Continue after the maximal subpart, not after the announced length."

    def decode(self, ids: Iterable[int]) -> str:
        data = self.decode_bytes(ids)
        text, here = "", 0
        while here < len(data):
            size = 1 + sum(data[here] >= lead for lead in (0xC0, 0xE0, 0xF0))
            try:
                text += data[here : here + size].decode("utf-8")
            except UnicodeDecodeError:
                text += "\ufffd"
            here += size
        return text


class SurrogatesDecoded(Encoder):
    """Decodes surrogates of three bytes each, as Java and CESU-8 write them, to characters."""

    clause = "DECODE-UTF8-1"
    fix = "Decode as UTF-8 with errors='replace', without surrogatepass."

    def decode(self, ids: Iterable[int]) -> str:
        try:
            return self.decode_bytes(ids).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return super().decode(ids)


class OverlongNulDecoded(Encoder):
    """Reads C0 80 as NUL, as Java's modified UTF-8 writes it to keep strings free of zero bytes."""

    clause = "DECODE-UTF8-1"
    fix = "C0 never occurs in UTF-8: it becomes U+FFFD, and so does the 80 after it."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).replace(b"\xc0\x80", b"\0").decode("utf-8", errors="replace")


class UnfinishedEndLost(Encoder):
    """Uses an incremental decoder and never finishes it, so that an incomplete last character vanishes."""

    clause = "DECODE-UTF8-1"
    fix = "End with decoder.decode(b'', final=True)."

    def decode(self, ids: Iterable[int]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return "".join([decoder.decode(self.vocab[index]) for index in ids])


# Changes to the text


class ByteOrderMarkDropped(Encoder):
    """Drops U+FEFF at the start, as the codec utf-8-sig and TextDecoder without ignoreBOM do."""

    clause = "DECODE-BOM-1"
    fix = "Decode as 'utf-8'; in JavaScript: new TextDecoder('utf-8', {ignoreBOM: true})."
    evidence = "js-tiktoken 1.0.21, gpt-tokenizer 4.0.0, ai-tokenizer 1.0.6, gpt-3-encoder 1.1.4"

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8-sig", errors="replace")


class TextEndsAtNul(Encoder):
    """Returns the bytes as a C string, which ends at the first NUL."""

    clause = "DECODE-TEXT-1"
    fix = "Pass the length with the bytes: std::string(data, size), not std::string(data)."
    evidence = "onnxruntime-extensions 0.15.2"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return super().decode_bytes(ids).partition(b"\0")[0]


class FirstSpaceStripped(Encoder):
    """Strips the space at the start, which tokenizers with a prefix space added before."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).removeprefix(" ")


class TrailingSpaceStripped(Encoder):
    """Strips white space at the end, as code that prints answers does."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).rstrip()


class SpacesCollapsed(Encoder):
    """Replaces several spaces by one, as a browser does."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged."
    evidence = "one step from toktokenizer 0.2.0, which collapses white space in training"

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(" +", " ", super().decode(ids))


class ControlCharactersDropped(Encoder):
    """Drops control characters other than line breaks and tabs, to protect a terminal."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged; escape it where you print it."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]", "", super().decode(ids))


class SpacesCleanedUp(Encoder):
    """Removes spaces before punctuation and contractions, as `clean_up_tokenization_spaces` does."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged (clean_up_tokenization_spaces=False)."
    evidence = "huggingface/transformers#21119, #31884; fixed for BPE in #44915"

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(r" (?=[.,?!]|'s|'m|'ve|'re|n't)", "", super().decode(ids))


class LineEndsMadeUniform(Encoder):
    """Turns CRLF and CR into LF, as reading and writing a file in text mode does."""

    clause = "DECODE-TEXT-1"
    fix = "Keep line ends; open files with newline=''."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).replace("\r\n", "\n").replace("\r", "\n")


class DecodedToNfc(Encoder):
    """Normalises the decoded text to NFC, so that texts that look equal compare equal."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text unchanged, without unicodedata.normalize."

    def decode(self, ids: Iterable[int]) -> str:
        return unicodedata.normalize("NFC", super().decode(ids))


# Special tokens


class SpecialsLeftOut(Encoder):
    """Leaves special tokens out of the text, as `skip_special_tokens` does for display."""

    clause = "SPECIAL-DECODE-1"
    fix = "Decode every id; leave skipping to the caller."
    evidence = "skip_special_tokens in Hugging Face tokenizers, its default there"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        return b"".join([token for token in map(self.vocab.__getitem__, ids) if token not in special])


class SpacesAroundSpecials(Encoder):
    """Puts a space before and after each special token, as `spaces_between_special_tokens` does."""

    clause = "DECODE-SPECIAL-1"
    fix = "Concatenate the bytes of all ids, special tokens included."
    evidence = "huggingface/transformers#25073, #29872"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        return b"".join(
            [b" " + token + b" " if token in special else token for token in map(self.vocab.__getitem__, ids)]
        )


class SpecialsDecodedByByteMap(Encoder):
    """Reads special tokens back through GPT-2's byte map if it knows all their characters: é| becomes E9 7C."""

    clause = "SPECIAL-DECODE-1"
    fix = "Decode a special token to the UTF-8 of its text; only other entries are spelled with the byte map."
    evidence = "Hugging Face tokenizers 0.23.3, transformers 4.57.6, gigatoken 0.10.0, splintr-rs 0.22.0, tokie 0.1.4"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.spelled(self.vocab[index]) for index in ids])

    def spelled(self, token: bytes) -> bytes:
        """Return the bytes of a special token whose text is a spelling, and other tokens unchanged."""
        if token not in {special.encode("utf-8") for special in self.special}:
            return token
        try:
            return unspell(token.decode("utf-8"))
        except ValueError:
            return token


# Unknown ids


class UnknownIdsSkipped(Encoder):
    """Skips ids without an entry, because `vocab.get(i, b"")` raises no error."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Use vocab[i], which raises KeyError."
    evidence = "Hugging Face tokenizers 0.23.3, fastokens 0.3.5, splintr-rs 0.22.0, tinybpe 1.0.0"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab.get(index, b"") for index in ids])


class UnknownIdsSkippedInBytes(Encoder):
    """Looks ids up with `vocab[i]` in decode and with `vocab.get(i, b"")` in decode_bytes."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Let decode call decode_bytes, and look ids up there with vocab[i]."
    evidence = "riptoken 0.2.4 (decode_bytes)"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab.get(index, b"") for index in ids])

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode_bytes(ids).decode("utf-8", errors="replace")


class UnknownIdsReplaced(Encoder):
    """Decodes ids without an entry to U+FFFD, as if they were malformed bytes."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Use vocab[i], which raises KeyError."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab.get(index, "\ufffd".encode()) for index in ids])


class NegativeIdsFromTheEnd(Encoder):
    """Keeps the tokens in a list, in which the index -1 is the last token."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Reject ids below 0, or look ids up in a dict."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        size = max(self.vocab) + 1
        return b"".join([self.vocab[index + size if -size <= index < 0 else index] for index in ids])


class IdZeroSkipped(Encoder):
    """Skips the id 0 as padding, or with `if token_id:`, though here it is a byte like any other."""

    clause = "DECODE-BYTES-1"
    fix = "Test `is not None` instead of truth, and remove padding by its own id."
    evidence = "one step from meta-pytorch/tokenizers#162: id 0 as the mark of an unknown token"

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab[index] for index in ids if index])
