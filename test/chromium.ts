import { execFileSync } from 'node:child_process'
import type { Browser } from 'playwright-core'
import { startChromium as start } from '../scripts/lib/chromium.mjs'

function chromiumPath(): string {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) return given
  return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim()
}

/** Starts the Chromium that the test run has found. */
export function startChromium(): Promise<Browser> {
  return start(chromiumPath())
}
