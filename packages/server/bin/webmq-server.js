#!/usr/bin/env node
import { catchSignals } from '../dist/doors/cli/early-signals.js'

// Before the other modules are read, which takes a while.
catchSignals()
await import('../dist/doors/cli/main.js')
