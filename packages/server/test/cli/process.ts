import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../bin/webmq-server.js', import.meta.url))

/** The result of a command line. */
export interface CliResult {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Options of a command line. */
export interface CliOptions {
  /** The whole environment besides `PATH` and what was built for tests: the caller's variables must not affect them. */
  readonly env?: NodeJS.ProcessEnv
  readonly stdin?: string
  readonly cwd?: string
}

/** A `webmq-server` process that runs. */
export interface CliProcess {
  readonly child: ChildProcess
  /** Output so far. */
  readonly output: { readonly stdout: string; readonly stderr: string }
  /** Resolves when the process has ended and all its output has arrived. */
  readonly ended: Promise<CliResult>
}

/** Starts the built command line as a process. */
export function startCli(args: readonly string[], { env = {}, stdin, cwd }: CliOptions = {}): CliProcess {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { PATH: process.env.PATH, WEBMQ_NATIVE_ADDON: process.env.WEBMQ_NATIVE_ADDON, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  // A command that does not read its input may have ended before this arrives.
  child.stdin.on('error', () => undefined).end(stdin ?? '')
  const ended = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exitCode, signal) => resolve({ exitCode, signal, ...output }))
  })
  return { child, output, ended }
}

/** Runs a command line to its end. */
export async function runCli(args: readonly string[], options?: CliOptions): Promise<CliResult> {
  return await startCli(args, options).ended
}
