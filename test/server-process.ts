import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../packages/server/bin/webmq-server.js', import.meta.url))
const START_TIMEOUT_MS = 15_000
const POLL_INTERVAL_MS = 25

/** A `webmq-server` in a process of its own, as a user runs it. */
export interface ServerProcess {
  readonly url: string
  readonly process: ChildProcess
  /** Ends it with a signal and waits until it is gone; resolves to its exit code, `null` after SIGKILL. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
}

/**
 * Starts `webmq-server` on loopback and resolves when `/health` answers.
 * @throws {Error} with the server's output when it does not come up in time.
 */
export async function startServerProcess(port: number, flags: readonly string[] = []): Promise<ServerProcess> {
  const child = spawn(process.execPath, [BIN, '--port', String(port), ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const url = `http://127.0.0.1:${port}`
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await answers(`${url}/health`))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`webmq-server did not start:\n${output}`)
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
  return {
    url,
    process: child,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const exited = once(child, 'exit')
      child.kill(signal)
      const [code] = (await exited) as [number | null]
      return code
    },
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    return false
  }
}
