"""As translate.py, which must lie beside it, by LiteRT's newer CompiledModel."""

import numpy as np
import translate
from ai_edge_litert.compiled_model import CompiledModel

FLOATS = "score", "probability", "known", "confidence"
TYPES = {"text": np.uint8, **dict.fromkeys(FLOATS, np.float32)}


class Translator(translate.Translator):
    """Texts to translations; threads take turns, for each calls the same runtime."""

    def __init__(self, path):
        super().__init__(path)  # CompiledModel would crash on a damaged file
        self._model = model = CompiledModel.from_file(str(path))
        self._input = model.create_input_buffer_by_name("translate", "text")
        details = model.get_output_tensor_details("translate")
        self._shapes = {name: details[name]["shape"] for name in details}
        self._outputs = {
            name: model.create_output_buffer_by_name("translate", name)
            for name in details
        }
        self._run = self._run_compiled

    def _run_compiled(self, text):
        self._input.write(text)
        self._model.run_by_name("translate", {"text": self._input}, self._outputs)
        return {name: self._read(name, shape) for name, shape in self._shapes.items()}

    def _read(self, name, shape):
        numbers = self._outputs[name].read(
            int(np.prod(shape)), TYPES.get(name, np.int32)
        )
        return numbers.reshape(shape)

    def close(self):
        super().close()
        self._model = self._input = self._outputs = None
