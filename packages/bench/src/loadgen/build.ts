import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RunError } from '../exit-codes.js'
import type { Progress } from '../progress.js'

const BENCH_FOLDER = fileURLToPath(new URL('../../', import.meta.url))
/** Its `.cargo/config.toml` names the folder that cargo builds into. */
const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url))
const TAIL_LINES = 15
/** The shell's exit code for a missing command. */
const NOT_FOUND = 127

/**
 * Builds the load generator and returns its path. Cost: half a second when it is up to date.
 * @throws {RunError} when the build fails and no earlier build exists.
 */
export async function buildLoadgen(progress: Pick<Progress, 'phase' | 'note'>): Promise<string> {
  const folder = join(process.env.CARGO_TARGET_DIR ?? join(REPOSITORY, 'target'), 'release')
  const program = join(folder, 'webmq-loadgen')
  const isThere = existsSync(program)
  progress.phase(
    isThere ? 'looking whether the load generator is up to date' : 'building the load generator (a minute)',
  )
  const { exitCode, output } = await run('npm', ['run', '--silent', 'build:loadgen'], BENCH_FOLDER)
  if (exitCode === 0) return program
  const hasNoCargo = exitCode === NOT_FOUND || /cargo: (command )?not found/.test(output)
  if (hasNoCargo && isThere) {
    progress.note('No cargo: the load generator is the one that was built before.')
    return program
  }
  if (hasNoCargo) {
    throw new RunError(
      'the load generator is built with Rust, but there is no cargo: install it from https://rustup.rs',
    )
  }
  const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
  throw new RunError(`the load generator did not build:\n${tail}`)
}

async function run(command: string, args: readonly string[], cwd: string) {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const exitCode = await new Promise<number>((resolve) => {
    child.once('error', (error) => {
      output += error.message
      resolve(NOT_FOUND)
    })
    child.once('close', (code) => resolve(code ?? 1))
  })
  return { exitCode, output }
}
