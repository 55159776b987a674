import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../deploy/files.js'
import { findPython } from './python.js'

const run = promisify(execFile)
const FOLDER = `${ROOT}clients/python`
const TEST_MS = 180_000

const python = await findPython('checks')

describe.skipIf(python.program === undefined)(`the package for Python ${python.missing ?? ''}`, () => {
  const { program = '', env } = python as { program?: string; env?: NodeJS.ProcessEnv }
  const runPython = async (...parameters: string[]) => (await run(program, parameters, { cwd: FOLDER, env })).stdout

  it('reads and checks as the vectors of the protocol say', () => runPython('-m', 'unittest', 'discover', 'tests'))

  it(
    'has types, strictly',
    async () => {
      expect(await runPython('-m', 'mypy', '--no-incremental')).toContain('no issues')
    },
    TEST_MS,
  )

  it('is in one format, without defects that ruff knows', async () => {
    await runPython('-m', 'ruff', 'check', '--no-cache', '.')
    await runPython('-m', 'ruff', 'format', '--no-cache', '--check', '.')
  })

  it(
    'is a wheel that installs and imports alone',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'webmq-wheel-'))
      try {
        await runPython(
          '-m',
          'pip',
          'wheel',
          '--quiet',
          '--no-deps',
          '--no-build-isolation',
          '--wheel-dir',
          folder,
          '.',
        )
        const [wheel = ''] = await readdir(folder)
        expect(wheel).toMatch(/^webmq_client-.*-py3-none-any\.whl$/)
        await run(program, [
          '-m',
          'pip',
          'install',
          '--quiet',
          '--no-deps',
          '--target',
          `${folder}/in`,
          `${folder}/${wheel}`,
        ])
        const alone = { ...env, PYTHONPATH: `${folder}/in:${env?.PYTHONPATH?.split(':')[1]}` }
        const { stdout } = await run(program, ['-c', 'import webmq; print(webmq.__file__)'], {
          cwd: folder,
          env: alone,
        })
        expect(stdout).toContain(`${folder}/in/webmq`)
      } finally {
        await rm(folder, { recursive: true })
      }
    },
    TEST_MS,
  )
})
