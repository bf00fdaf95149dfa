// Prints what the caller says, a line for each check; test_swift_caller.py reads them.
import Foundation

let file = URL(fileURLWithPath: CommandLine.arguments[1])
let translator = try await Task.detached { try Translator(file: file, threads: 2) }.value

func show(_ name: String, _ value: String) {
  print("\(name): \(value.replacingOccurrences(of: "\n", with: "\\n"))")
}

func said(_ text: String) async -> String {
  do {
    let result = try await translator.translate(text)
    return "\(result.text) \(result.isTruncated)"
  } catch { return "\(error)" }
}

show("text", await said("one two. Three four!\n\nfive\nsix. "))
show("chinese", await said("一二。三"))
show("nothing", await said(" \n "))
let table = try String(contentsOfFile: CommandLine.arguments[3], encoding: .utf8)
let rows = table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { row in
  row.split(separator: "|").map(String.init)
}
show("wrong sentences", "\(rows.filter { sentences(of: $0.joined()) != $0 })")
let pairs = try String(contentsOfFile: CommandLine.arguments[4], encoding: .utf8)
let judged = pairs.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { row in
  row.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
}
let wrong = judged.filter { row in
  let found = doubts(source: row[0], translation: row[1]).map { $0.rawValue }
  return found.joined(separator: " ") != row[2]
}
show("wrong doubts", "\(wrong)")
show("cut", await said("one. cut it. Two"))
show("bytes", await said("One. " + String(repeating: "X", count: 41)))
show("tokens", await said("One. " + String(repeating: "X", count: 31)))

let texts = (0..<40).map { "Text \($0). And \($0)" }
let calls = texts.map { text in
  Task { try await translator.translate(text).text == text.uppercased() }
}
var own = true
for call in calls { own = try await call.value && own }
show("own", "\(own)")

let long = Task { await said(String(repeating: "One. ", count: 2000)) }
try await Task.sleep(nanoseconds: 100_000_000)
long.cancel()
show("cancelled", await long.value)
show("after", await said("still there"))
await translator.close()
show("closed", await said("a"))

let linkedFile = URL(fileURLWithPath: CommandLine.arguments[2])
let linked = try Translator(file: linkedFile, threads: 2)
let tokens = try await linked.translate(" Größe 猫. \n\nx y").tokens
show("doubts of", "\(try await linked.translate("x").doubts.map { $0.rawValue })")
let described = tokens.map { "\($0.text),\($0.source!),\($0.confidence!)" }
show("tokens of", described.joined(separator: "|"))
show("tokens without", "\(try await Translator(file: file, threads: 2).translate("x").tokens)")
