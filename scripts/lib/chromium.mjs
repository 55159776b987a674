import { existsSync } from 'node:fs'
import { run, StepError } from './steps.mjs'

/** Keeps Chromium from calling home; sandboxing is off because tests may run as root. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/**
 * A Chromium for the browser tests: the one that `WEBMQ_TEST_CHROMIUM` names, else one on PATH, else, as root on
 * Debian, the distribution's package. Build first.
 * @returns {Promise<string>} path of the executable
 * @throws {StepError} with instructions when there is none.
 */
export async function findChromium() {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) {
    if (!existsSync(given)) throw new StepError(`WEBMQ_TEST_CHROMIUM names ${given}, which does not exist.`)
    return given
  }
  const found = (await onPath()) ?? (await installed())
  if (found !== undefined) return found
  throw new StepError('The browser tests need Chromium: install it, or name an executable in WEBMQ_TEST_CHROMIUM.')
}

/** Starts the Chromium that was found. */
export async function startChromium(executablePath) {
  const { chromium } = await import('playwright-core')
  return await chromium.launch({ executablePath, args: FLAGS })
}

async function installed() {
  const { canInstallPackages, installPackage } = await import('webmq-services')
  if (!canInstallPackages()) return undefined
  try {
    await installPackage('chromium')
  } catch (error) {
    throw new StepError(`Chromium could not be installed: ${error.message}`)
  }
  return await onPath()
}

async function onPath() {
  for (const name of NAMES) {
    const { exitCode, output } = await run('which', [name], { log: 'which-chromium' })
    if (exitCode === 0) return output.trim()
  }
  return undefined
}
