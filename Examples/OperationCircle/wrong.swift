// An importer has steps that depend on each other. A step that was added later closes the circle.
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
download.addDependency(clean)  // the folder must be empty

queue.addOperations([download, unpack, index, clean], waitUntilFinished: true)
print("imported")
