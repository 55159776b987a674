import { describe, expect, it } from 'vitest'
import { loadLibrary, wayToInstall } from './load-library.js'

describe('the library of a broker', () => {
  it('is asked for in one sentence with its command when it is not installed', async () => {
    // A variable, so that nothing resolves the name before the test runs.
    const name: string = 'webmq-library-that-nobody-has'
    await expect(loadLibrary(name, 'the broker redis://…', () => import(name))).rejects.toMatchObject({
      code: 'E_BROKER_MISSING',
      message: `the broker redis://… needs the package ${name}; install it next to webmq-server: \`npm install ${name}\``,
    })
  })

  it('is not asked for when it is there and breaks', async () => {
    const broken = () => Promise.reject(new SyntaxError('Unexpected token'))
    await expect(loadLibrary('pg', 'the database outbox', broken)).rejects.toMatchObject({
      code: 'E_BROKER_MISSING',
      message: 'the database outbox cannot load pg: Unexpected token',
    })
  })

  it('is added to the command of npx, whose folder no `npm install` reaches', () => {
    expect(wayToInstall('webmq-broker-redis', true)).toBe(
      'start with it: `npx -p webmq-server -p webmq-broker-redis webmq-server …`',
    )
  })
})
