// What export/ios/LiteRTModel.swift uses of LiteRT 2.3's Swift package, as it is documented.
import Foundation

public enum Accelerator: Hashable { case cpu, gpu }

public protocol ConcreteOptions {}

public final class CpuOptions: ConcreteOptions {
  var threads = 0

  public init() throws {}

  public func setNumThreads(_ numThreads: Int) throws { threads = numThreads }
}

public final class Options {
  var threads = 0

  public init() throws {}

  public func setHardwareAccelerators(_ accelerators: Set<Accelerator>) throws {}

  public func addConcreteOptions(_ concreteOptions: ConcreteOptions) throws {
    threads = (concreteOptions as! CpuOptions).threads
  }
}

public final class Environment {
  public enum Option {}

  public init(options: [Option] = []) throws {}
}

public final class TensorBuffer {
  var values: [Any] = []
  public let size: Int

  init(size: Int) { self.size = size }

  public func write<T>(_ data: [T]) throws { values = data }

  public func read<T>() throws -> [T] { values.map { $0 as! T } }
}

public final class CompiledModel {
  private let names: [String]

  public init(filePath: String, environment: Environment, options: Options? = nil) throws {
    print("threads: \(options?.threads ?? 0)")
    let tokens = ["source_spans", "confidence", "text_ends", "probability", "known"]
    names = ["score", "text", "ids"] + (filePath.contains("tokens") ? tokens : [])
  }

  public func createInputBuffers(signatureIndex: Int = 0) throws -> [TensorBuffer] {
    [TensorBuffer(size: 40)]
  }

  public func createOutputBuffers(signatureIndex: Int = 0) throws -> [TensorBuffer] {
    names.map { _ in TensorBuffer(size: 64) }
  }

  public func outputName(outputIndex: Int, signatureIndex: Int = 0) throws -> String {
    names[outputIndex]
  }

  public func run(
    inputs: [TensorBuffer], outputs: [TensorBuffer], options: Options? = nil,
    signatureIndex: Int = 0
  ) throws {
    let said = echo(try inputs[0].read())
    (outputs[0].values, outputs[1].values, outputs[2].values) = ([said.score], said.text, said.ids)
    guard names.count > 3 else { return }
    let tokens = echoedTokens(try inputs[0].read())
    (outputs[3].values, outputs[4].values) = (tokens.spans, tokens.confidence)
    outputs[5].values = tokens.ends
    (outputs[6].values, outputs[7].values) = ([Float(0.5)], [Float(0.4)])
  }
}
