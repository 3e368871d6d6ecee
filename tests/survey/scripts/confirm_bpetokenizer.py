"""Show the findings in bpetokenizer. Run it with `pip install bpetokenizer==1.2.1`."""

import tempfile

from bpetokenizer import BPETokenizer
from shared import GPT2, check, finish


def trained(*corpora, vocab_size=258):
    made = BPETokenizer(GPT2)
    for text in corpora:
        made.train(text, vocab_size)
    return made


def encode(text, token, special_tokens):
    made = BPETokenizer(GPT2, {token: 256})
    made.vocab = {byte: bytes([byte]) for byte in range(256)}
    return made.encode(text, special_tokens=special_tokens)


def grouped():
    made = BPETokenizer("(a)b|c")
    made.vocab = {byte: bytes([byte]) for byte in range(256)}
    return made.encode("abc")


def saved():
    made = trained("\xe9", vocab_size=257)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t"
        made.save(path)
        loaded = BPETokenizer(GPT2)
        loaded.load(f"{path}.json")
    return loaded.decode([195, 169])


def again():
    made = trained("abab", "cdcd cdcd")
    return made.decode(made.encode("abab"))


check("TRAIN-EMPTY-1", lambda: len(trained("").merges), 0)
check("TRAIN-SIZE-2", lambda: len(trained("ab", vocab_size=256).merges), 0)
check("TRAIN-END-1", lambda: len(trained("abc", vocab_size=1000).merges), 2)
check("SPECIAL-EXACT-1", lambda: encode("<|e|>", "<|e|>", "all"), [256])
check("SPECIAL-OFF-1", lambda: encode("zz a", "zz", "none"), [122, 122, 32, 97])
check("SPLIT-DEFAULT-1", grouped, [97, 98, 99])
check("LAW-SAVE-1", saved, "\xe9")
check("FILE-LOAD-1", lambda: bool(BPETokenizer.from_pretrained("wi17k_base")), True)
check("LAW-REPLAY-1", again, "abab")
finish()
