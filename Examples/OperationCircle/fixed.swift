// Cleaning up before and cleaning up after are two steps.
import Foundation

let queue = OperationQueue()
queue.name = "import"

func step(_ name: String) -> BlockOperation {
  let operation = BlockOperation { print(name) }
  operation.name = name
  return operation
}

let download = step("download")
let unpack = step("unpack")
let index = step("index")
let clean = step("clean")

unpack.addDependency(download)
index.addDependency(unpack)
clean.addDependency(index)
let empty = step("empty")  // the folder must be empty
download.addDependency(empty)

queue.addOperations([empty, download, unpack, index, clean], waitUntilFinished: true)
print("imported")
