// Runs a file with LiteRT 2.3: the product LiteRT of the Swift package
// https://github.com/google-ai-edge/LiteRT, branch release/2.3.0
import Foundation
import LiteRT

final class Model {
  var maxBytes: Int { inputs[0].size }
  private let model: CompiledModel
  private let inputs, outputs: [TensorBuffer]
  private let names: [String]

  init(file: URL, threads: Int) throws {
    let (options, cpuOptions) = (try Options(), try CpuOptions())
    try options.setHardwareAccelerators([.cpu])
    try cpuOptions.setNumThreads(threads)
    try options.addConcreteOptions(cpuOptions)
    model = try CompiledModel(
      filePath: file.path, environment: Environment(), options: options)
    (inputs, outputs) = (try model.createInputBuffers(), try model.createOutputBuffers())
    let model = self.model
    names = try outputs.indices.map { try model.outputName(outputIndex: $0) }
    guard Set(names).isSuperset(of: ["text", "ids", "score"]) else {
      throw TranslatorError.notATranslator
    }
  }

  /// The output of a text of `maxBytes` bytes.
  func run(_ octets: [UInt8]) throws -> Output {
    try inputs[0].write(octets)
    try model.run(inputs: inputs, outputs: outputs)
    return Output(
      text: try read("text"), ids: try read("ids"), score: try read("score")[0],
      probability: try readIfThere("probability").first, known: try readIfThere("known").first,
      tokens: TokenOutput(
        ends: try readIfThere("text_ends"), spans: try readIfThere("source_spans"),
        confidence: try readIfThere("confidence")))
  }

  private func read<Number>(_ name: String) throws -> [Number] {
    try outputs[names.firstIndex(of: name)!].read()
  }

  private func readIfThere<Number>(_ name: String) throws -> [Number] {
    names.contains(name) ? try read(name) : []
  }
}
