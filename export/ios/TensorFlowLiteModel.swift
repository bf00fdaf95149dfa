// Runs a file with the Interpreter of TensorFlow Lite: the product TensorFlowLite of LiteRT's
// Swift package, https://github.com/google-ai-edge/LiteRT, branch release/2.3.0
import Foundation
import TensorFlowLite

final class Model {
  let maxBytes: Int
  private let runner: SignatureRunner

  init(file: URL, threads: Int) throws {
    var options = Interpreter.Options()
    options.threadCount = threads
    let interpreter = try Interpreter(modelPath: file.path, options: options)
    guard interpreter.signatureKeys.contains("translate") else {
      throw TranslatorError.notATranslator
    }
    runner = try interpreter.signatureRunner(with: "translate")
    maxBytes = try runner.input(named: "text").data.count
  }

  /// The output of a text of `maxBytes` bytes.
  func run(_ octets: [UInt8]) throws -> Output {
    try runner.invoke(with: ["text": Data(octets)])
    return Output(
      text: try read("text"), ids: try read("ids"), score: try read("score")[0],
      probability: try readIfThere("probability").first, known: try readIfThere("known").first,
      tokens: TokenOutput(
        ends: try readIfThere("text_ends"), spans: try readIfThere("source_spans"),
        confidence: try readIfThere("confidence")))
  }

  private func read<Number>(_ name: String) throws -> [Number] {
    try runner.output(named: name).data.withUnsafeBytes { Array($0.bindMemory(to: Number.self)) }
  }

  private func readIfThere<Number>(_ name: String) throws -> [Number] {
    runner.outputs.contains(name) ? try read(name) : []
  }
}
