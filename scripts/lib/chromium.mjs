import { existsSync } from 'node:fs'
import { must, run, StepError } from './steps.mjs'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/**
 * A Chromium for the browser tests: the one that `WEBMQ_TEST_CHROMIUM` names, else one on PATH, else, as root on
 * Debian, the distribution's package.
 * @returns {Promise<string>} path of the executable
 * @throws {StepError} that says what to do when there is none.
 */
export async function findChromium() {
  const given = process.env.WEBMQ_TEST_CHROMIUM
  if (given !== undefined) {
    if (!existsSync(given)) throw new StepError(`WEBMQ_TEST_CHROMIUM names ${given}, which does not exist.`)
    return given
  }
  const found = await onPath()
  if (found !== undefined) return found
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    await must('The package lists could not be updated.', 'apt-get', ['update'], { log: 'apt-update' })
    await must(
      'Chromium could not be installed.',
      'apt-get',
      ['install', '-y', '--no-install-recommends', 'chromium'],
      {
        log: 'apt-chromium',
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      },
    )
    const installed = await onPath()
    if (installed !== undefined) return installed
  }
  throw new StepError('The browser tests need Chromium: install it, or name an executable in WEBMQ_TEST_CHROMIUM.')
}

async function onPath() {
  for (const name of NAMES) {
    const { exitCode, output } = await run('which', [name], { log: 'which-chromium' })
    if (exitCode === 0) return output.trim()
  }
  return undefined
}
