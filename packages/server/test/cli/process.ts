import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../bin/webmq-server.js', import.meta.url))

/** What a command line ended with. */
export interface CliResult {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** How a command line is run. */
export interface CliOptions {
  /** Beside `PATH`, the whole environment: variables of whoever runs the tests must not decide them. */
  readonly env?: NodeJS.ProcessEnv
  readonly stdin?: string
  readonly cwd?: string
}

/** A `webmq-server` process that runs. */
export interface CliProcess {
  readonly child: ChildProcess
  /** What was written so far. */
  readonly output: { readonly stdout: string; readonly stderr: string }
  /** Resolves when the process has ended and everything it wrote has arrived. */
  readonly ended: Promise<CliResult>
}

/** Starts the real command line, built, as a process of its own. */
export function startCli(args: readonly string[], { env = {}, stdin, cwd }: CliOptions = {}): CliProcess {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { PATH: process.env.PATH, ...env },
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
