"""Language models behind the port `Llm`."""

from hummock.llm.openai_compatible import Endpoint, OpenAiCompatible

__all__ = ["Endpoint", "OpenAiCompatible"]
