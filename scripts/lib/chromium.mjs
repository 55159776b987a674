import { existsSync } from 'node:fs'
import { print, run, StepError } from './steps.mjs'

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

/** Without windows: a page costs a fifth of the CPU time. */
const SHELL = 'chromium-headless-shell'
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/**
 * A Chromium for the browser tests: the one that `WEBMQ_TEST_CHROMIUM` names, else the headless shell on PATH, else, as
 * root on Debian, the distribution's package of it, else any on PATH. Build first.
 * @returns {Promise<string>} path of the executable
 * @throws {StepError} with instructions when there is none.
 */
export async function findChromium() {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) {
    if (!existsSync(given)) throw new StepError(`WEBMQ_TEST_CHROMIUM names ${given}, which does not exist.`)
    return given
  }
  const found = (await onPath([SHELL])) ?? (await installedShell()) ?? (await onPath(NAMES))
  if (found !== undefined) return found
  throw new StepError('The browser tests need Chromium: install it, or name an executable in WEBMQ_TEST_CHROMIUM.')
}

/** Starts the Chromium that was found. */
export async function startChromium(executablePath) {
  const { chromium } = await import('playwright-core')
  return await chromium.launch({ executablePath, args: FLAGS })
}

async function installedShell() {
  const { canInstallPackages, installPackage } = await import('webmq-services')
  if (!canInstallPackages()) return undefined
  try {
    await installPackage(SHELL)
  } catch (error) {
    print(`  no ${SHELL}: ${error.message}`)
  }
  return await onPath([SHELL])
}

async function onPath(names) {
  for (const name of names) {
    const { exitCode, output } = await run('which', [name], { log: 'which-chromium' })
    if (exitCode === 0) return output.trim()
  }
  return undefined
}
