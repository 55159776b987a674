import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ServerOptions } from '../../src/index.js'
import { Backend } from '../hooks/backend.js'
import type { Door } from './door.js'
import { DURABLE_DOORS } from './durable.js'
import { DELIVER_DOORS, DELIVERING_HOOKS, ECHOING_HOOKS, HOOK_DOORS, webhookDoors } from './hooks.js'
import { House, LEASE_MS } from './house.js'
import { HTTP_DOORS } from './http.js'
import { playDoors } from './play-doors.js'
import { PROCESS_DOORS } from './process.js'
import { SSE_DOORS } from './sse.js'
import { WEBSOCKET_DOORS } from './websocket.js'

// Each text through each door into the server. A JSON text that one client sent has ended the process, and other texts have
// lost their digits: so no door may parse, write again or walk what it does not bound first.

let backend: Backend

beforeAll(async () => {
  backend = await Backend.start()
})

afterAll(async () => {
  await backend[Symbol.asyncDispose]()
})

/** The doors of one server. What is left of them, streams without a writer above all, does it no harm either. */
function play(title: string, doors: readonly Door<House>[], optionsOf: () => ServerOptions = () => ({})): void {
  describe(title, () => {
    let house: House

    beforeAll(async () => {
      house = await House.open(optionsOf())
    })

    afterAll(() => house.close())

    playDoors(() => house, doors)

    it('leaves nothing that does harm when its leases end', async () => {
      await new Promise((resolve) => setTimeout(resolve, 1.5 * LEASE_MS))
      expect(await house.harm()).toBe('')
    })
  })
}

play('a text', [...WEBSOCKET_DOORS, ...HTTP_DOORS, ...DURABLE_DOORS, ...SSE_DOORS, ...PROCESS_DOORS])
play('a text before hooks', HOOK_DOORS, () => ({ hooks: ECHOING_HOOKS }))
play('a text before a hook of deliveries', DELIVER_DOORS, () => ({ hooks: DELIVERING_HOOKS }))
play(
  'a text before a webhook',
  webhookDoors(() => backend),
  () => ({
    webhook: { url: backend.url, events: ['publish', 'presence'] },
  }),
)
