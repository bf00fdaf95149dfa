// NOT COMPILED HERE. Text in, text out with one .tflite file of keras_vanilla; iOS 15.
// Swift package https://github.com/google-ai-edge/LiteRT, branch release/2.3.0, product
// LiteRT. (The pod TensorFlowLiteSwift ends with 2.17.0; int8 files need 2.18 or later.)
import Foundation
import LiteRT

enum TranslatorError: Error { case notATranslator, tooManyBytes(limit: Int), tooManyTokens }

/// Make one and keep it, with `await Task.detached { try Translator(file: url) }.value`.
/// LiteRT does not check a file: of a download compare the checksum first.
actor Translator {
  private let model: CompiledModel
  private let inputs, outputs: [TensorBuffer]
  private let text, score: Int

  init(file: URL) throws {
    let options = try Options()
    try options.setHardwareAccelerators([.cpu])
    let model = try CompiledModel(
      filePath: file.path, environment: Environment(), options: options)
    let outputs = try model.createOutputBuffers()
    let names = try outputs.indices.map { try model.outputName(outputIndex: $0) }
    guard let text = names.firstIndex(of: "text"), let score = names.firstIndex(of: "score")
    else { throw TranslatorError.notATranslator }
    (self.inputs, self.outputs) = (try model.createInputBuffers(), outputs)
    (self.model, self.text, self.score) = (model, text, score)
  }

  func translate(_ source: String) throws -> String {
    let (octets, limit) = (Array(source.utf8), inputs[0].size)
    guard octets.count <= limit else { throw TranslatorError.tooManyBytes(limit: limit) }
    try inputs[0].write(octets + [UInt8](repeating: 0, count: limit - octets.count))
    try model.run(inputs: inputs, outputs: outputs)
    let scores: [Float] = try outputs[score].read()
    guard !scores[0].isNaN else { throw TranslatorError.tooManyTokens }
    let bytes: [UInt8] = try outputs[text].read()
    return String(decoding: bytes.prefix((bytes.lastIndex { $0 != 0 } ?? -1) + 1), as: UTF8.self)
  }
}
