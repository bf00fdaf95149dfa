// Texts to translations with one .tflite file of keras_vanilla; iOS 15. Add it to an app with
// Sentences.swift, Tokens.swift, and TensorFlowLiteModel.swift or LiteRTModel.swift, which name
// their packages. Compiled and run by tests/export/test_swift_caller.py beside stubs of the
// runtimes' modules, not on a phone.
import Foundation

/// `isTruncated`: a sentence reached the file's longest output before its end. A file of
/// `export --outputs` gives `tokens`, see Tokens.swift. What speaks against a sentence is in
/// `doubts`, see Doubts.swift.
struct Translation: Equatable, Sendable {
  let text: String
  let isTruncated: Bool
  let tokens: [Token]
  let doubts: [Doubt]
}

enum TranslatorError: Error, Equatable {
  case notATranslator, tooManyBytes(limit: Int), tooManyTokens, closed
}

/// What a model gives for a sentence.
struct Output {
  let text: [UInt8]
  let ids: [Int32]
  let score: Float
  let probability, known: Float?  // since 0.9.0
  let tokens: TokenOutput
}

/// Make one and keep it, with `await Task.detached { try Translator(file: url) }.value`.
/// Runtimes do not check a file: of a download compare the SHA-256 first.
actor Translator {
  private var model: Model?
  private let endID: Int32?

  init(file: URL, threads: Int = 1) throws {
    endID = try Self.endID(of: file)
    model = try Model(file: file, threads: threads)
  }

  /// Translates sentence by sentence, and keeps the lines; a task that is cancelled ends
  /// after a sentence.
  func translate(_ text: String) throws -> Translation {
    var (joined, isTruncated, tokens, begin) = ("", false, [Token](), 0)
    var doubts = [Doubt]()
    for piece in sentences(of: text) {
      try Task.checkCancellation()
      let sentence = piece.trimmingCharacters(in: .whitespacesAndNewlines)
      let blank = Translation(text: "", isTruncated: false, tokens: [], doubts: [])
      let result = sentence.isEmpty ? blank : try translateSentence(sentence)
      joined += result.text + space(after: piece, result.text)
      isTruncated = isTruncated || result.isTruncated
      doubts += result.doubts.filter { !doubts.contains($0) }
      let before = piece.prefix(while: \.isWhitespace).utf16.count
      tokens += result.tokens.map { $0.moved(by: begin + before) }
      begin += piece.utf16.count
    }
    return Translation(
      text: joined.trimmingCharacters(in: .whitespacesAndNewlines), isTruncated: isTruncated,
      tokens: tokens, doubts: doubts)
  }

  func translateSentence(_ sentence: String) throws -> Translation {
    guard let model else { throw TranslatorError.closed }
    let (octets, limit) = (Array(sentence.utf8), model.maxBytes)
    guard octets.count <= limit else { throw TranslatorError.tooManyBytes(limit: limit) }
    let output = try model.run(octets + [UInt8](repeating: 0, count: limit - octets.count))
    guard !output.score.isNaN else { throw TranslatorError.tooManyTokens }
    let bytes = output.text.prefix((output.text.lastIndex { $0 != 0 } ?? -1) + 1)
    let hasEnd = endID.map(output.ids.contains) ?? true  // version 0.5.0 does not state it
    let text = String(decoding: bytes, as: UTF8.self)
    return Translation(
      text: text, isTruncated: !bytes.isEmpty && !hasEnd,
      tokens: output.tokens.tokens(source: octets, text: output.text),
      doubts: doubts(
        source: sentence, translation: text, probability: output.probability,
        known: output.known))
  }

  /// Frees the memory, after the text that is being translated.
  func close() { model = nil }

  /// The description is at the end of the file.
  private static func endID(of file: URL) throws -> Int32? {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    let size = try handle.seekToEnd()
    try handle.seek(toOffset: size - min(size, 65_536))
    let description = String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
    let found = description.range(of: #""end_id": \d+"#, options: .regularExpression)
    return found.flatMap { Int32(description[$0].dropFirst(10)) }
  }
}

private func space(after piece: String, _ translation: String) -> String {
  let space = String(String(piece.reversed()).prefix(while: \.isWhitespace).reversed())
  if !space.isEmpty { return space }
  return translation.last.map { $0 >= "\u{3000}" } ?? false ? "" : " "
}
