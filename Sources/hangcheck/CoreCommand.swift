import Glibc
import HangReport
import ProcessInspector

/// `hangcheck core`: explains what is left of a process.
struct CoreCommand {
  let options: Options
  let file: String
  let executable: String?

  func run() -> Int32 {
    do throws(LaunchError) {
      let output = try AttachOutput(options: options)
      let core = try opened()
      let report = try look(at: core)
      if core.isCutShort {
        Tool.say("\(file): it was cut short; what is not in it may hang all the same")
      }
      if !options.quiet, let (signal, tid) = core.ending {
        Tool.say(
          "\(file): signal \(signal) (\(String(cString: strsignal(signal)))) ended the process, in"
            + " thread \(tid)")
      }
      let status = output.write(report)
      output.close()
      return status
    } catch {
      Tool.say(error.message)
      return error.status
    }
  }

  private func opened() throws(LaunchError) -> CoreFile {
    do throws(InputError) { return try CoreFile(path: file, executable: executable) } catch {
      throw LaunchError(status: 65, message: error.message)
    }
  }

  private func look(at core: CoreFile) throws(LaunchError) -> HangReport {
    do throws(AttachRefusal) {
      let session = try AttachSession(
        core: core,
        setup: AttachSetup(
          tool: Tool.identity, waitThreshold: options.waitThreshold, stops: false))
      return options.stacks.kept(of: try session.look())
    } catch {
      throw LaunchError(status: ExitStatus.nothingToInspect, message: error.message)
    }
  }
}
