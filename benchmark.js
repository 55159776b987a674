#!/usr/bin/env node
// The bench, from the root of a checkout: node benchmark.js [options]
import { existsSync } from 'node:fs'

if (!existsSync(new URL('packages/bench/dist/main.js', import.meta.url))) {
  console.error('error: the bench is not built: npm run build')
  process.exit(2)
}
await import('./packages/bench/benchmark.js')
