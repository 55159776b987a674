import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../packages/server/bin/webmq-server.js', import.meta.url))
const START_TIMEOUT_MS = 60_000
/** The line of a server that listens. */
const LISTENS = /^WebMQ \S+ listens on ws(s?):\/\/([^/]+)\//m

/** A `webmq-server` in a process of its own, as a user runs it. */
export interface ServerProcess {
  /** `http://127.0.0.1:8080`; `https:` with TLS. */
  readonly url: string
  readonly process: ChildProcess
  /** Standard output and standard error so far. */
  output(): string
  /** Ends it with a signal and waits until it is gone; resolves to its exit code, `null` after SIGKILL. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
}

/**
 * Starts `webmq-server` on loopback and resolves when it says that it listens.
 * @param start `program`: its file in `bin`; by default that of this checkout. `env`: beside that of this process.
 * @throws {Error} with the server's output when it does not come up in time.
 */
export async function startServerProcess(
  port: number,
  flags: readonly string[] = [],
  { program = BIN, env = {} }: { readonly program?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<ServerProcess> {
  const args = [program, '--port', String(port), ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    const fail = () => {
      child.kill('SIGKILL')
      reject(new Error(`webmq-server did not start:\n${output}`))
    }
    const deadline = setTimeout(fail, START_TIMEOUT_MS)
    const read = (chunk: Buffer) => {
      output += chunk
      const [, secure, host] = LISTENS.exec(output) ?? []
      if (host === undefined) return
      clearTimeout(deadline)
      resolve(`http${secure}://${host}`)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.on('close', fail)
  })
  return {
    url,
    process: child,
    output: () => output,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const exited = once(child, 'exit')
      child.kill(signal)
      const [code] = (await exited) as [number | null]
      return code
    },
  }
}
