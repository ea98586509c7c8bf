"""Chinese, Japanese and Korean characters, as the inside of a regular expression's class."""

from typing import Final

CJK: Final = (
    "\u3005-\u3007\u303b"  # iteration and closing marks, ideographic zero
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # hangul
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # ideographs
)
"""Scripts written without spaces between words (and hangul, whose words are inflected): indexed by character pairs."""

LAST_IDEOGRAPH: Final = 0x3FFFD
"""Beyond it no character belongs to a word."""
