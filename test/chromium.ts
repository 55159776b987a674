import { spawnSync } from 'node:child_process'
import type { Browser } from 'playwright-core'
import { startChromium as start } from '../scripts/lib/chromium.mjs'

function chromiumPath(): string {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) return given
  // Prints those that there are, and fails unless all are.
  const { stdout } = spawnSync('which', ['chromium-headless-shell', 'chromium'], { encoding: 'utf8' })
  const [found] = stdout.split('\n')
  if (found === undefined || found === '')
    throw new Error('there is no chromium-headless-shell and no chromium on PATH')
  return found
}

/** Starts the Chromium that the test run has found. */
export function startChromium(): Promise<Browser> {
  return start(chromiumPath())
}
