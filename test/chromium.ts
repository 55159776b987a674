import { execFileSync } from 'node:child_process'
import { type Browser, chromium } from 'playwright-core'

/** Keeps Chromium from calling home; sandboxing is off because tests may run as root. */
const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

function chromiumPath(): string {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) return given
  return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim()
}

/** Starts the Chromium that the test run has found. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: CHROMIUM_FLAGS })
}
