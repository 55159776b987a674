import { describe, expect, it } from 'vitest'
import { loadPackage, wayToInstall } from './load-library.js'
import { MANIFEST } from './manifest.js'

describe('an optional package', () => {
  it('is asked for in one sentence with its command when it is not installed', async () => {
    // A variable, so that nothing resolves the name before the test runs.
    const packageName: string = 'webmq-library-that-nobody-has'
    const loading = loadPackage(
      { packageName, exportName: 'create', importPackage: () => import(packageName) },
      'the broker redis://…',
    )
    await expect(loading).rejects.toMatchObject({
      code: 'E_BROKER_MISSING',
      message: `the broker redis://… needs the package ${packageName}; install it next to webmq-server: \`npm install ${packageName}\``,
    })
  })

  it('is asked for in the version of the server when it is there and breaks', async () => {
    const importPackage = () => Promise.reject(new SyntaxError('Unexpected token'))
    const loading = loadPackage({ packageName: 'pino', exportName: 'pino', importPackage }, 'the broker redis://…')
    await expect(loading).rejects.toMatchObject({
      code: 'E_BROKER_MISSING',
      message: `the broker redis://… cannot load pino: Unexpected token; install it next to webmq-server: \`npm install pino@${MANIFEST.version}\``,
    })
  })

  it('is added to the command of npx, whose folder no `npm install` reaches', () => {
    expect(wayToInstall('webmq-broker-redis', true)).toBe(
      'start with it: `npx -p webmq-server -p webmq-broker-redis webmq-server …`',
    )
  })
})
