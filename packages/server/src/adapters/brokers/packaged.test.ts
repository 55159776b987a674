import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { brokerOptions } from 'webmq-conformance'
import { MANIFEST } from '../../kernel/base/manifest.js'
import { BROKER_PACKAGES, createPackagedBroker } from './packaged.js'

const OPTIONS = brokerOptions({ broker: 'redis://127.0.0.1:1' })
const NAME = 'webmq-broker-that-nobody-has'
const MEND = `install it next to webmq-server: \`npm install ${NAME}@${MANIFEST.version}\``

const refusalOf = (importPackage: () => Promise<unknown>) =>
  createPackagedBroker({ packageName: NAME, exportName: 'createBroker', importPackage }, OPTIONS).then(
    () => 'a broker',
    ({ code, message }: WebMQError) => `${code}: ${message}`,
  )

describe('a broker in a package', () => {
  it('is what the function of the package makes, of the options of the server', async () => {
    const broker = { name: 'made' }
    const importPackage = () =>
      Promise.resolve({ createBroker: (options: object) => (options === OPTIONS ? broker : undefined) })
    expect(await createPackagedBroker({ packageName: NAME, exportName: 'createBroker', importPackage }, OPTIONS)).toBe(
      broker,
    )
  })

  it('that is not installed is asked for with its command', async () => {
    const name: string = NAME
    expect(await refusalOf(() => import(name))).toBe(
      `E_BROKER_MISSING: the broker redis://… needs the package ${NAME}; ` +
        `install it next to webmq-server: \`npm install ${NAME}\``,
    )
  })

  const MISFITS: readonly (readonly [string, () => Promise<unknown>, string])[] = [
    ['has no such export', () => Promise.resolve({}), `${NAME} does not export createBroker; ${MEND}`],
    [
      'has a driver for another version of the contract',
      () =>
        Promise.resolve({
          createBroker: () => {
            throw new WebMQError('E_BROKER_MISSING', { message: 'written for version 2' })
          },
        }),
      `written for version 2; ${MEND}`,
    ],
  ]
  it.each(MISFITS)('that %s is asked for in the version of the server', async (_, importPackage, text) => {
    expect(await refusalOf(importPackage)).toBe(`E_BROKER_MISSING: ${text}`)
  })

  // A name that another version of the server does not export ends the import.
  it('that is installed and does not load is asked for in the version of the server', async () => {
    const fault = new SyntaxError("'webmq-server/brokers' does not provide an export named 'newer'")
    const loading = createPackagedBroker(
      { ...BROKER_PACKAGES.redis, importPackage: () => Promise.reject(fault) },
      OPTIONS,
    )
    await expect(loading).rejects.toMatchObject({
      code: 'E_BROKER_MISSING',
      message: expect.stringMatching(
        new RegExp(`cannot load webmq-broker-redis: .*'newer'; install it .*webmq-broker-redis@${MANIFEST.version}`),
      ),
    })
  })

  it('that refuses its options is not to be installed again', async () => {
    const createBroker = () => Promise.reject(new WebMQError('E_OPTION_INVALID', { detail: 'broker' }))
    expect(await refusalOf(() => Promise.resolve({ createBroker }))).toMatch(/^E_OPTION_INVALID: (?!.*npm install)/)
  })
})
