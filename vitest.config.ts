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
    projects: [
      project('client'),
      project('server'),
      project('native'),
      project('bench'),
      { test: { name: 'end-to-end', include: ['test/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 } },
    ],
  },
})
