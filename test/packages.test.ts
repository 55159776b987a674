import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('./packages/main.mjs', import.meta.url))

const [major] = process.versions.node.split('.')

interface Result {
  readonly name: string
  readonly state: string
  readonly note: string
}

/** The fast half of `npm run test:packages`: published to a registry on this machine, installed and used as by a user. */
describe('the published packages', () => {
  let results: readonly Result[] = []

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webmq-dry-run-'))
    const file = join(folder, 'results.json')
    const child = spawn(process.execPath, [SCRIPT, '--fast', '--json', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    await once(child, 'close')
    try {
      results = JSON.parse(readFileSync(file, 'utf8')).results
    } catch (cause) {
      throw new Error(output, { cause })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 600_000)

  it.each([
    'npx webmq-server answers /health and names its transport',
    'npx webmq-server init writes what is of deploy/, too',
    'webmq-client in another project listens and publishes',
    'TypeScript strict under node16',
    ...['redis', 'rabbitmq', 'nats'].map(
      (broker) => `Node ${major}: three nodes over ${broker}, as its page installs them, hear each other`,
    ),
    'a release is undone as docs/releasing.md says',
  ])('%s', (name) => {
    expect(results.find((result) => result.name === name)).toMatchObject({ state: 'pass' })
  })
})
