"""Show the findings in rs-bpe. Run it with `pip install rs-bpe==0.1.0`."""

from rs_bpe.bpe import openai
from shared import check, finish

cl100k = openai.cl100k_base()
check("DECODE-UTF8-1", lambda: cl100k.decode([112]), "\ufffd")
check("DECODE-UNKNOWN-1", lambda: cl100k.decode([100300]), "an error")
check("DECODE-UNKNOWN-1", lambda: cl100k.decode([1000000]), "an error")
check("SPECIAL-EXACT-1", lambda: list(cl100k.encode("<|endoftext|>")), [100257])
finish()
