import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const project = (name: string) => ({
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
      { test: { name: 'end-to-end', include: ['test/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 } },
    ],
  },
})
