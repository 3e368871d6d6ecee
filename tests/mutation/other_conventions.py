"""The reference under conventions that are not its defaults."""

from bpe_conformance.reference import conventional

FirstSeen = conventional(tie_break="first-seen", byte_order="gpt2", id_layout="specials-bytes-merges")
LexSmaller = conventional(tie_break="lex-smaller", id_layout="bytes-merges-specials")
SmallerIds = conventional(tie_break="smaller-ids", byte_order="gpt2")
SpecialAsText = conventional(tie_break="smaller-ids", id_layout="specials-bytes-merges", train_special="text")
