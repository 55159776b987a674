#!/usr/bin/env node
import '../dist/doors/cli/main.js'
