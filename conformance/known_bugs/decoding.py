"""Wrong decoders: the order of joining and decoding, malformed bytes, the text afterwards, unknown ids."""

from __future__ import annotations

import codecs
import functools
import operator
import re
import unicodedata
from collections.abc import Iterable

from .plain import Encoder

# Joining


class TokensDecodedApart(Encoder):
    """Decodes each token alone and joins the texts, so that a character of several tokens becomes several U+FFFD."""

    clause = "DECODE-BYTES-1"
    fix = "Join the bytes first: b''.join(vocab[i] for i in ids).decode('utf-8', errors='replace')."

    def decode(self, ids: Iterable[int]) -> str:
        return "".join([self.vocab[index].decode("utf-8", errors="replace") for index in ids])


class DecodedInWindows(Encoder):
    """Decodes 64 ids at a time and joins the texts, to keep buffers small; characters across a window break."""

    clause = "DECODE-BYTES-1"
    fix = "Decode once, or use codecs.getincrementaldecoder('utf-8')('replace') over the windows."

    def decode(self, ids: Iterable[int]) -> str:
        tokens = [self.vocab[index] for index in ids]
        windows = [b"".join(tokens[start : start + 64]) for start in range(0, len(tokens), 64)]
        return "".join(window.decode("utf-8", errors="replace") for window in windows)


class TokensJoinedBySpaces(Encoder):
    """Joins the tokens by spaces, as code for whole words does."""

    clause = "DECODE-BYTES-1"
    fix = "Join with nothing between: spaces are part of the tokens."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b" ".join(self.vocab[index] for index in ids)


class IdsAsPlaces(Encoder):
    """Keeps the tokens in a list in order of their ids and takes an id for a place in it; gaps shift what follows."""

    clause = "DECODE-BYTES-1"
    fix = "Look ids up in a dict, or leave the places of missing ids empty."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = [self.vocab[index] for index in sorted(self.vocab)]
        return b"".join(tokens[index] for index in ids)


class OnlyBuiltTokensDecoded(Encoder):
    """Decodes by a table of bytes and merges, so that an entry that no merge builds raises KeyError."""

    clause = "DECODE-BYTES-1"
    fix = "Decode by the vocabulary, not by the merges."

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
    """Adds the tokens up with `reduce(operator.add, tokens)`, which has no start value for an empty list."""

    clause = "DECODE-EMPTY-1"
    fix = "Use b''.join(tokens)."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return functools.reduce(operator.add, [self.vocab[index] for index in ids])


class OnlyListsDecoded(Encoder):
    """Adds a list to the ids, or asks `isinstance(ids, list)`: a tuple of ids raises."""

    clause = "DECODE-SEQUENCE-1"
    fix = "Begin with ids = list(ids), or only iterate over them."

    def decode(self, ids: Iterable[int]) -> str:
        if not isinstance(ids, list):
            raise TypeError("a list of ids is wanted")
        return super().decode(ids)


class NulAtTokenEndDropped(Encoder):
    """Keeps the tokens in a numpy array of dtype S, which pads with NUL and strips all NULs at the end of a token."""

    clause = "DECODE-TEXT-1"
    fix = "Keep the tokens in a list or a dict, or in an array of dtype object."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab[index].rstrip(b"\0") for index in ids])


class TokenLengthsOfOneByte(Encoder):
    """Keeps the lengths of tokens in uint8, beside all their bytes in one array: 256 becomes 0, 260 becomes 4."""

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
    """Decodes strictly, which works for what an encoder gave and raises for what a model may emit."""

    clause = "DECODE-UTF8-1"
    fix = "Decode with errors='replace'."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8")


class BytesAsLatin1(Encoder):
    """Makes one character of each byte, as `chr` and Latin-1 do; only ASCII comes back."""

    clause = "DECODE-BYTES-1"
    fix = "Decode the joined bytes as UTF-8."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("latin-1")


class Latin1AsFallback(Encoder):
    """Decodes strictly and falls back on Latin-1 for the whole text if a byte anywhere is malformed."""

    clause = "DECODE-UTF8-1"
    fix = "Decode with errors='replace' instead of catching UnicodeDecodeError."

    def decode(self, ids: Iterable[int]) -> str:
        try:
            return self.decode_bytes(ids).decode("utf-8")
        except UnicodeDecodeError:
            return self.decode_bytes(ids).decode("latin-1")


class OneReplacementPerByte(Encoder):
    """Puts one U+FFFD for each malformed byte, as decoders do that step on by one byte after an error."""

    clause = "DECODE-UTF8-1"
    fix = "One U+FFFD for each maximal subpart: bytes.decode('utf-8', 'replace') does it."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub("[\udc80-\udcff]", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape"))


class OneReplacementPerRun(Encoder):
    """Puts one U+FFFD for a whole run of malformed bytes, to spare the reader a row of them."""

    clause = "DECODE-UTF8-1"
    fix = "One U+FFFD for each maximal subpart: bytes.decode('utf-8', 'replace') does it."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub("[\udc80-\udcff]+", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape"))


class AnnouncedLengthSkipped(Encoder):
    """Skips as many bytes as the lead byte announces if they are no character; what is well-formed there is lost."""

    clause = "DECODE-UTF8-1"
    fix = "Go on behind the maximal subpart, not behind the announced length."

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
    """Accepts surrogates of three bytes each, as Java and old MySQL write them, and gives them out as characters."""

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
    fix = "C0 is never a byte of UTF-8: it becomes U+FFFD, and so does the 80 behind it."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).replace(b"\xc0\x80", b"\0").decode("utf-8", errors="replace")


class UnfinishedEndLost(Encoder):
    """Uses an incremental decoder and never tells it that the text ends, so that an unfinished character vanishes."""

    clause = "DECODE-UTF8-1"
    fix = "End with decoder.decode(b'', final=True)."

    def decode(self, ids: Iterable[int]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return "".join([decoder.decode(self.vocab[index]) for index in ids])


# The text afterwards


class ByteOrderMarkDropped(Encoder):
    """Drops U+FEFF at the beginning, as the codec utf-8-sig does and TextDecoder without ignoreBOM."""

    clause = "DECODE-BOM-1"
    fix = "Decode as 'utf-8'; in JavaScript: new TextDecoder('utf-8', {ignoreBOM: true})."

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8-sig", errors="replace")


class TextEndsAtNul(Encoder):
    """Hands the bytes over as a C string, which ends at the first NUL."""

    clause = "DECODE-TEXT-1"
    fix = "Pass the length on with the bytes: std::string(data, size), not std::string(data)."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return super().decode_bytes(ids).partition(b"\0")[0]


class FirstSpaceStripped(Encoder):
    """Strips the space at the beginning, which tokenizers with a prefix space added before."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).removeprefix(" ")


class TrailingSpaceStripped(Encoder):
    """Strips white space at the end, as code that prints answers does."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).rstrip()


class SpacesCollapsed(Encoder):
    """Makes one space of several, as a browser does."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(" +", " ", super().decode(ids))


class ControlCharactersDropped(Encoder):
    """Drops control characters other than line ends and tabs, to keep a terminal safe."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is; escape it where it is printed."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]", "", super().decode(ids))


class SpacesCleanedUp(Encoder):
    """Takes out spaces before punctuation and contractions, as `clean_up_tokenization_spaces` does for word pieces."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is (clean_up_tokenization_spaces=False)."

    def decode(self, ids: Iterable[int]) -> str:
        return re.sub(r" (?=[.,?!]|'s|'m|'ve|'re|n't)", "", super().decode(ids))


class LineEndsMadeUniform(Encoder):
    """Turns CRLF and CR to LF, as reading and writing a file in text mode does."""

    clause = "DECODE-TEXT-1"
    fix = "Keep line ends; open files with newline=''."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).replace("\r\n", "\n").replace("\r", "\n")


class DecodedToNfc(Encoder):
    """Normalises the decoded text to NFC, so that texts compare equal that look equal."""

    clause = "DECODE-TEXT-1"
    fix = "Return the decoded text as it is, without unicodedata.normalize."

    def decode(self, ids: Iterable[int]) -> str:
        return unicodedata.normalize("NFC", super().decode(ids))


# Special tokens


class SpecialsLeftOut(Encoder):
    """Leaves special tokens out of the text, as `skip_special_tokens` does for display."""

    clause = "SPECIAL-DECODE-1"
    fix = "Decode every id; skipping is for a caller to ask for."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        return b"".join([token for token in map(self.vocab.__getitem__, ids) if token not in special])


class SpacesAroundSpecials(Encoder):
    """Sets a space before and behind each special token, as `spaces_between_special_tokens` does for display."""

    clause = "DECODE-SPECIAL-1"
    fix = "Concatenate the bytes of all ids, special tokens included."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        return b"".join(
            [b" " + token + b" " if token in special else token for token in map(self.vocab.__getitem__, ids)]
        )


# Unknown ids


class UnknownIdsSkipped(Encoder):
    """Skips ids without an entry, since `vocab.get(i, b"")` raises nothing."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Use vocab[i], which raises KeyError."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab.get(index, b"") for index in ids])


class UnknownIdsSkippedInBytes(Encoder):
    """Looks ids up with `vocab[i]` in decode and with `vocab.get(i, b"")` in decode_bytes, where they are skipped."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Let decode call decode_bytes, which looks ids up with vocab[i]."

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
    """Keeps the tokens in a list, whose index -1 is the last token."""

    clause = "DECODE-UNKNOWN-1"
    fix = "Refuse what is below 0, or look ids up in a dict."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        size = max(self.vocab) + 1
        return b"".join([self.vocab[index + size if -size <= index < 0 else index] for index in ids])


class IdZeroSkipped(Encoder):
    """Skips the id 0 as padding, or by `if token_id:`; in this numbering it is a byte like any other."""

    clause = "DECODE-BYTES-1"
    fix = "Test `is not None` instead of truth, and strip padding by its own id."

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab[index] for index in ids if index])
