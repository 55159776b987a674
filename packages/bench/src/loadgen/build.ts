import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RunError } from '../exit-codes.js'
import type { Progress } from '../progress.js'
import { COMMAND_NOT_FOUND, runScript } from './run-script.js'

/** Its `.cargo/config.toml` names the folder that cargo builds into. */
const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url))

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
  const { exitCode, output, tail } = await runScript('build:loadgen')
  if (exitCode === 0) return program
  const hasNoCargo = exitCode === COMMAND_NOT_FOUND || /cargo: (command )?not found/.test(output)
  if (hasNoCargo && isThere) {
    progress.note('No cargo: the load generator is the one that was built before.')
    return program
  }
  if (hasNoCargo) {
    throw new RunError(
      'the load generator is built with Rust, but there is no cargo: install it from https://rustup.rs',
    )
  }
  throw new RunError(`the load generator did not build:\n${tail}`)
}
