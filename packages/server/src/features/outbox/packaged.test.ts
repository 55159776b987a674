import { describe, expect, it } from 'vitest'
import type { WebMQError } from 'webmq-client/protocol'
import { postgresOutbox } from 'webmq-outbox-postgres'
import { MANIFEST } from '../../kernel/base/manifest.js'
import { loadOutboxDriver } from './packaged.js'

const NAME = 'webmq-outbox-that-nobody-has'
const MEND = `install it next to webmq-server: \`npm install ${NAME}@${MANIFEST.version}\``

const refusalOf = (importPackage: () => Promise<unknown>) =>
  loadOutboxDriver({ packageName: NAME, exportName: 'outbox', importPackage }).then(
    () => 'a driver',
    ({ code, message }: WebMQError) => `${code}: ${message}`,
  )

describe('a database outbox in a package', () => {
  it('is that of PostgreSQL', async () => {
    expect(await loadOutboxDriver()).toBe(postgresOutbox)
  })

  it('that is not installed is asked for with its command', async () => {
    const name: string = NAME
    expect(await refusalOf(() => import(name))).toBe(
      `E_BROKER_MISSING: the database outbox (--outbox) needs the package ${NAME}; ` +
        `install it next to webmq-server: \`npm install ${NAME}\``,
    )
  })

  it.each([
    ['has no such export', {}, `${NAME} does not export outbox; ${MEND}`],
    [
      'is written for another version of the contract',
      { outbox: { ...postgresOutbox, outboxVersion: 2 } },
      `${NAME} is written for version 2 of webmq-server/outbox, and this server has version 1; ${MEND}`,
    ],
    [
      'says no version',
      { outbox: () => undefined },
      `${NAME} is written for version undefined of webmq-server/outbox, and this server has version 1; ${MEND}`,
    ],
  ])('that %s is asked for in the version of the server', async (_, namespace, text) => {
    expect(await refusalOf(() => Promise.resolve(namespace))).toBe(`E_BROKER_MISSING: ${text}`)
  })
})
