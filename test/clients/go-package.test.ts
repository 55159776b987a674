import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer } from 'webmq-server'
import { blocksFor } from '../docs/examples.js'
import { findGo, GO_FOLDER } from './go.js'

const run = promisify(execFile)
const TEST_MS = 300_000

const go = await findGo()
/** TestReadmeCompiles of the package compiles all of them. */
const [first] = blocksFor(import.meta.url).examples()

describe.skipIf(go.adapter === undefined)(`the package for Go ${go.missing ?? ''}`, () => {
  const runGo = async (...parameters: string[]) => (await run('go', parameters, { cwd: GO_FOLDER })).stdout

  it(
    'does as its tests and the vectors of the protocol say, without races',
    async () => {
      expect(await runGo('test', '-race', './...')).toContain('ok')
    },
    TEST_MS,
  )

  it(
    'is in one format, without defects that vet knows, and tidy',
    async () => {
      await runGo('vet', './...')
      expect((await run('gofmt', ['-l', '.'], { cwd: GO_FOLDER })).stdout).toBe('')
      await runGo('mod', 'tidy', '-diff')
    },
    TEST_MS,
  )

  it(
    'does what the first block of its README says',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'webmq-go-'))
      onTestFinished(() => rm(folder, { recursive: true }))
      const server = createServer({ port: 0, logLevel: 'silent' })
      const { port } = await server.start()
      onTestFinished(() => server.stop({ drainMs: 0 }))
      await writeFile(`${folder}/main.go`, first?.code ?? '')
      await runGo('build', '-o', `${folder}/program`, `${folder}/main.go`)
      const program = execFile(`${folder}/program`, { env: { ...process.env, WEBMQ_URL: `ws://127.0.0.1:${port}/ws` } })
      onTestFinished(() => void program.kill())
      const [line] = (await program.stdout?.take(1).toArray()) ?? []
      expect(String(line)).toBe('chat.42.message {"text":"hi"}\n')
    },
    TEST_MS,
  )
})
