"""The bilingual sample that `hummock demo` learns and indexes."""

from hummock_tools.demo.sample import Question, Sample, SampleMemory, load_sample, sample_input, sample_repository

__all__ = ["Question", "Sample", "SampleMemory", "load_sample", "sample_input", "sample_repository"]
