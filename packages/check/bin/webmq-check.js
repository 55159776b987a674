#!/usr/bin/env node
// A checker that breaks says nothing of an installation: not 1, which is Node's.
process.on('uncaughtException', (error) => {
  console.error(error)
  process.exit(2)
})
await import('../dist/main.js')
