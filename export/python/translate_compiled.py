"""As translate.py, which must lie beside it, by LiteRT's newer CompiledModel."""

import numpy as np
import translate
from ai_edge_litert.compiled_model import CompiledModel


class Translator(translate.Translator):
    """Text in, text out."""

    def __init__(self, path):
        super().__init__(path)  # CompiledModel would crash on a damaged file
        self._model = CompiledModel.from_file(str(path))
        self._input = self._model.create_input_buffer_by_name("translate", "text")
        outputs = self._model.get_output_tensor_details("translate")
        (self._size,) = outputs["text"]["shape"]
        self._outputs = {
            name: self._model.create_output_buffer_by_name("translate", name)
            for name in outputs
        }
        self._run = self._run_compiled

    def _run_compiled(self, text):
        self._input.write(text)
        self._model.run_by_name("translate", {"text": self._input}, self._outputs)
        return {
            "text": self._outputs["text"].read(self._size, np.uint8),
            "score": self._outputs["score"].read(1, np.float32),
        }
