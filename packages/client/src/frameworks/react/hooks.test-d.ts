import { expectTypeOf } from 'vitest'
import { ref } from 'vue'
import type { Message } from '../../index.js'
import { useMessages as useSvelteMessages } from '../svelte/index.js'
import { useMessages as useVueMessages } from '../vue/index.js'
import { useLatest, useMessages, usePresence, usePublish, useTopic } from './index.js'

/** It is compiled, not run. */
export function Types(): null {
  // Topics are those that an app declares; here there are none, so payloads are unknown and all keys are known.
  useTopic('chat.*', (payload, { key }) => {
    expectTypeOf(payload).toBeUnknown()
    expectTypeOf(key).toBeString()
  })
  expectTypeOf(useMessages('chat.1').messages[0]?.payload).toBeUnknown()
  expectTypeOf(useMessages(null).isStale).toBeBoolean()
  expectTypeOf(useLatest('a').latest).toExtend<ReadonlyMap<string, Message<unknown>>>()
  expectTypeOf(usePresence('room', { name: 'Ada' }).members[0]?.data).toEqualTypeOf<{ name: string } | undefined>()
  void usePublish('a')(1, { timeoutMs: 1 })
  void usePublish()('a', 1)
  // @ts-expect-error a pattern is not a key
  usePublish('a.*')
  // @ts-expect-error the id belongs to one publish
  usePublish('a', { id: 'x' })

  expectTypeOf(useVueMessages(ref('a')).messages.value[0]?.payload).toBeUnknown()
  expectTypeOf(useVueMessages(() => null).loadOlder).returns.toEqualTypeOf<Promise<void>>()
  useSvelteMessages('a').subscribe(({ isStale }) => expectTypeOf(isStale).toBeBoolean())
  return null
}
