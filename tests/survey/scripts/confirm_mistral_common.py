"""Show the findings in mistral-common. Run it with `pip install mistral-common==1.13.1`."""

from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from shared import check, finish, loaded, tokenizer_json


def encode(text):
    return loaded(Tekkenizer.from_file, tokenizer_json()).encode(text, bos=False, eos=False)


check("PIPELINE-LOAD-1", lambda: encode("a"), [97])
finish()
