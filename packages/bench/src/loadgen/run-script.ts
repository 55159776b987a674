import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const BENCH_FOLDER = fileURLToPath(new URL('../../', import.meta.url))
const TAIL_LINES = 15

/** The shell's exit code for a missing command. */
export const COMMAND_NOT_FOUND = 127

export interface ScriptResult {
  readonly exitCode: number
  readonly output: string
  /** The last lines, for a message. */
  readonly tail: string
}

/** Runs a script of the bench's `package.json`; resolves when it has ended, whatever its exit code. */
export async function runScript(name: string, args: readonly string[] = []): Promise<ScriptResult> {
  const child = spawn('npm', ['run', '--silent', name, '--', ...args], {
    cwd: BENCH_FOLDER,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const exitCode = await new Promise<number>((resolve) => {
    child.once('error', (error) => {
      output += error.message
      resolve(COMMAND_NOT_FOUND)
    })
    child.once('close', (code) => resolve(code ?? 1))
  })
  return { exitCode, output, tail: output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n') }
}
