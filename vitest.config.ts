import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (file: string) => fileURLToPath(new URL(`packages/${file}`, import.meta.url))

/** The suites test the sources, and see the same ports as they do. */
const resolve = {
  alias: {
    'webmq-conformance': source('conformance/src/index.ts'),
    'webmq-server/ports': source('server/src/ports/index.ts'),
  },
}

const project = (name: string) => ({
  resolve,
  test: {
    name,
    root: `packages/${name}`,
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})

export default defineConfig({
  test: {
    globalSetup: ['test/services-setup.ts'],
    // On two cores the default is one; tests that break brokers spend most of their time waiting.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      project('client'),
      project('server'),
      project('native'),
      project('bench'),
      project('services'),
      {
        resolve,
        test: { name: 'end-to-end', include: ['test/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
})
