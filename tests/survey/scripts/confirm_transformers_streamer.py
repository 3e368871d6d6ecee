"""Show the findings in transformers' TextStreamer. Run it with `pip install transformers==5.24.0`."""

import time

import transformers
from shared import check, finish, loaded, tokenizer_json


class Ids(list):
    """A list with what the streamer asks of an array."""

    shape = (1,)

    def tolist(self):
        return self


class Deltas(transformers.TextStreamer):
    def on_finalized_text(self, text, stream_end=False):
        self.deltas.append(text)


def streamer():
    text = tokenizer_json(special=["<|e|>"])
    made = Deltas(loaded(lambda path: transformers.PreTrainedTokenizerFast(tokenizer_file=path), text))
    made.deltas = []
    return made


def deltas(ids, made=None):
    made = made or streamer()
    for index in ids:
        made.put(Ids([index]))
    return made.deltas


def seconds(ids):
    made, started = streamer(), time.process_time()
    deltas(ids, made)
    return time.process_time() - started


def grows(part):
    return seconds(part * (4000 // len(part))) > 23 * seconds(part * (500 // len(part)))


check("DETOK-LAZY-1", lambda: "".join(deltas([256] * 1000)) != "", True)
check("DETOK-PROMPT-1", lambda: deltas(b"a!b"), ["a", "!", "b"])
check("DETOK-HELD-1", lambda: len("".join(deltas(b"a" + b"\x80" * 9))) >= 7, True)
check("DETOK-UNKNOWN-1", lambda: deltas([97, 999]), "an error")
check("DETOK-COST-1", lambda: grows("low löwer ".encode()), False)
check("DETOK-COST-2", lambda: grows(b"\x80"), False)
finish()
