import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { playsRust, shortScope } from '../scripts/lib/test-scope.mjs'
import { ROOT } from './docs/blocks.js'

const hashOf = (turn: number) => turn.toString(16).padStart(8, '0').repeat(5)
const TURNS = Array.from({ length: 5 * 8 * 7 }, (_, turn) => hashOf(turn))
const quiet = shortScope({ hash: hashOf(0), changed: [] })
const all = [...quiet.left, ...quiet.chosen].toSorted()

describe('what npm test leaves to test:all', () => {
  it('are files that exist, each once', () => {
    expect(all.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([])
    expect(all).toEqual([...new Set(all)])
  })

  it('has its turn, unless only test:all plays it', () => {
    const played = new Set(TURNS.flatMap((hash) => shortScope({ hash, changed: [] }).chosen))
    const never = all.filter((file) => !played.has(file))
    expect(never).toContain('test/deploy/helm.test.ts')
    expect(never.length).toBeLessThan(35)
    expect(played.size).toBe(all.length - never.length)
  })

  it('does not have the test that a change is about, but waits for its turn when a change is about all', () => {
    const changed = ['test/deploy/helm.test.ts', 'test/history/mesh.test.ts']
    expect(shortScope({ hash: hashOf(0), changed }).chosen).toEqual([...quiet.chosen, ...changed])
    expect(shortScope({ hash: hashOf(0), changed: all }).left).toEqual(quiet.left)
  })

  it('takes turns among the tests of a broker when its code changes', () => {
    for (const hash of TURNS.slice(0, 8)) {
      const { chosen } = shortScope({ hash, changed: ['packages/broker-redis/src/link.ts'] })
      expect(chosen).toContainEqual(expect.stringMatching(/^test\/(history|streams)\/redis\.test\.ts$/))
      expect(chosen).toContainEqual(expect.stringMatching(/brokers\/redis-(faults|promotion)\.test\.ts$/))
    }
  })

  it.each([
    ['clients/python/webmq/client.py', 'test/clients/conformance.test.ts'],
    ['docs/client/types.md', 'test/docs/compile.test.ts'],
    ['packages/client/README.md', 'test/docs/compile.test.ts'],
    ['packages/client/src/core/types.ts', 'packages/client/test/typed-parts.test.ts'],
    ['packages/client/src/parts/tabs/hub.ts', 'test/browser/flow.test.ts'],
    ['packages/server/admin/admin.js', 'test/admin.test.ts'],
  ])('has the test that a change of %s concerns', (code, file) => {
    for (const hash of TURNS.slice(0, 8)) expect(shortScope({ hash, changed: [code] }).chosen).toContain(file)
  })

  it('has the tests of Rust in one turn of eight, whatever has changed', () => {
    expect(playsRust('16')).toBe(true)
  })
})
