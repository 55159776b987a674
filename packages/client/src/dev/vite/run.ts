import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'

const RETRY_MS = 50

/** A module that ends its process with this one, however this one ends: its standard input is a pipe from here. */
const END_WITH_INPUT = `data:text/javascript,${encodeURIComponent(
  "process.stdin.on('error', () => 0).on('close', () => process.kill(process.pid, 'SIGTERM')).resume().unref()",
)}`

/** A process that dev servers share. */
export interface Running {
  /** Ends the process unless another dev server uses it. */
  readonly release: () => void
  /** Resolves when the process answers at `url`, has ended, or `limitMs` are over: to whether it is silent. */
  isSilent(url: string, limitMs: number): Promise<boolean>
}

interface Shared {
  readonly child: ChildProcess
  users: number
}

/** By their arguments. A dev server that restarts begins the new one before it ends the old one. */
const running = new Map<string, Shared>()

/**
 * Runs a program of Node.js, or shares it with those who run it with the same arguments. It ends with this process, also
 * when that is killed; it cannot read its standard input.
 * @param onEnd It has ended by itself, with this exit code or signal.
 */
export function run(args: readonly string[], onEnd: (code: number | string) => void): Running {
  const name = JSON.stringify(args)
  const shared = running.get(name) ?? { child: start(args), users: 0 }
  const { child } = shared
  if (shared.users++ === 0) {
    running.set(name, shared)
    child.once('exit', (code, signal) => {
      if (running.get(name) === shared) running.delete(name)
      if (shared.users > 0) onEnd(code ?? signal ?? 'no code')
    })
  }
  return {
    release() {
      if (--shared.users > 0) return
      running.delete(name)
      child.kill()
    },
    async isSilent(url, limitMs) {
      const endMs = performance.now() + limitMs
      const isRunning = () => child.exitCode === null && child.signalCode === null
      const answers = () =>
        fetch(url, { signal: AbortSignal.timeout(limitMs) }).then(
          () => true,
          () => false,
        )
      while (isRunning()) {
        if (await answers()) return false
        if (performance.now() >= endMs) return true
        await setTimeout(RETRY_MS)
      }
      return false
    },
  }
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, ['--import', END_WITH_INPUT, ...args], { stdio: ['pipe', 'inherit', 'inherit'] })
}
