import { describe, expect, it } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import * as react from '../react/index.js'
import * as svelte from '../svelte/index.js'
import * as vue from '../vue/index.js'
import { bindable } from './bindable.js'

/** Place of the options of each hook. */
const OPTIONS_AT: Readonly<Record<string, number>> = {
  useClient: 0,
  useStatus: 0,
  useTopic: 2,
  usePublish: 1,
  useLatest: 1,
  useStateTopic: 1,
  useMessages: 1,
  useStream: 1,
  usePresence: 2,
}

describe('bindable', () => {
  it('gives the client where the options stand, unless they name another one', () => {
    const { client } = createTestClient()
    const { client: other } = createTestClient()
    const hook = bindable((key: string, options: object = {}) => [key, options]) as {
      of(given: unknown): (key: string, options?: object) => unknown
    }
    expect(hook.of(client)('a')).toEqual(['a', { client }])
    expect(hook.of(client)('a', { limit: 5 })).toEqual(['a', { client, limit: 5 }])
    expect(hook.of(client)('a', { client: other })).toEqual(['a', { client: other }])
  })

  it.each([
    ['react', react, { useStatus: 1 }],
    ['vue', vue, {}],
    ['svelte', svelte, {}],
  ])('finds the options of all hooks: %s', (_, module: object, exceptions) => {
    const hooks = Object.entries(module).filter(([name]) => name.startsWith('use'))
    expect(hooks.length).toBeGreaterThanOrEqual(8)
    for (const [name, hook] of hooks) {
      expect((hook as () => void).length, name).toBe({ ...OPTIONS_AT, ...exceptions }[name])
      expect((hook as { of?: unknown }).of, name).toBeTypeOf('function')
    }
  })
})
