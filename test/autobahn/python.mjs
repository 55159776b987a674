import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { must, ROOT, run, StepError } from '../../scripts/lib/steps.mjs'

/** Kept between runs; holds the two environments, the reports and nothing else. */
export const CACHE = path.join(ROOT, '.cache', 'autobahn')

/** The last release for Python 2.7 of either. */
const VIRTUALENV = 'virtualenv==20.15.1'
const TEST_SUITE = 'autobahntestsuite==25.10.1'

/**
 * Gets Autobahn's test suite, which needs Python 2.7, into a virtual environment; at once when it is there already.
 * @returns {Promise<string>} the path of `wstest`
 * @throws {StepError} with what to do.
 */
export async function installTestSuite() {
  const environment = path.join(CACHE, 'venv')
  const wstest = path.join(environment, 'bin', 'wstest')
  // Written last: an installation that was broken off is made again.
  const isComplete = path.join(CACHE, `${TEST_SUITE}.installed`)
  if (existsSync(isComplete)) return wstest
  const python2 = await findPython2()
  if (python2 === undefined) {
    throw new StepError(
      "Autobahn's WebSocket suite needs Python 2.7: install it (`pyenv install 2.7.18`, or your system's package) and run this again.",
    )
  }
  const tool = path.join(CACHE, 'tool')
  for (const directory of [tool, environment]) rmSync(directory, { recursive: true, force: true })
  const sentence =
    "Autobahn's WebSocket suite could not be installed: python3 with venv and the Python package index are needed."
  const step = (command, ...args) => must(sentence, command, args, { log: 'autobahn-install' })
  await step('python3', '-m', 'venv', tool)
  await step(path.join(tool, 'bin', 'pip'), 'install', VIRTUALENV)
  await step(path.join(tool, 'bin', 'virtualenv'), '--python', python2, environment)
  await step(path.join(environment, 'bin', 'python'), '-m', 'pip', 'install', TEST_SUITE)
  writeFileSync(isComplete, '')
  return wstest
}

/** `python2.7` may be a shim that only says which version is not active: each candidate has to run. */
async function findPython2() {
  const pyenv = path.join(process.env.PYENV_ROOT ?? path.join(homedir(), '.pyenv'), 'versions')
  const versions = existsSync(pyenv) ? readdirSync(pyenv).filter((name) => name.startsWith('2.7')) : []
  const candidates = ['python2.7', 'python2', ...versions.map((name) => path.join(pyenv, name, 'bin', 'python2.7'))]
  for (const candidate of candidates) {
    const script = 'import sys; print("version", sys.version_info[:2])'
    const { exitCode, output } = await run(candidate, ['-c', script], { log: 'autobahn-python' })
    if (exitCode === 0 && output.includes('(2, 7)')) return candidate
  }
  return undefined
}
