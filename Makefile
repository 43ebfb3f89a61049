# A thin layer over CMake: the work is in CMakeLists.txt, CMakePresets.json and scripts/.
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
PYTHON ?= $(shell command -v /usr/bin/python3 || echo python3)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all build run web serve check train-demo check-ort check-slow wheel deb dist install bench bench-ort bench-llama bench-cuda bench-train bench-python format lint deps clean help

all: build

build:
	@command -v cmake >/dev/null || { echo "cmake is missing; 'make deps' installs it" >&2; exit 1; }
	@cmake --preset release >/dev/null
	@cmake --build --preset release --parallel $(JOBS)

run:
	@scripts/install-deps.sh run
	@$(MAKE) build
	build/berth plan
	build/berth run

train-demo:
	@scripts/install-deps.sh run
	@$(MAKE) build
	@scripts/train-demo.sh build/berth

web:
	@scripts/install-deps.sh web
	@JOBS=$(JOBS) scripts/build-web.sh

serve: web
	@node scripts/serve-web.mjs build/web $(PORT)

check:
	@scripts/install-deps.sh check
	@JOBS=$(JOBS) scripts/check.sh

check-ort: build
	@scripts/check-ort.sh

check-slow:
	@scripts/install-deps.sh check
	@JOBS=$(JOBS) scripts/check-slow.sh $(TESTS)

wheel:
	@scripts/install-deps.sh run
	@JOBS=$(JOBS) BERTH_PYTHON_BUILD=build/wheel $(PYTHON) python/build_backend.py build/packages

deb: build
	@scripts/package-deb.sh build build/packages

dist:
	@scripts/install-deps.sh run
	@JOBS=$(JOBS) scripts/dist.sh build/packages

install: build
	cmake --install build --prefix "$(PREFIX)"

bench:
	@scripts/install-deps.sh run
	@cmake --preset bench -DBERTH_DNNL=$(if $(DNNL),ON,OFF) >/dev/null
	@cmake --build --preset bench --parallel $(JOBS)
	@for b in $$(find build/measure/bench -type f -name 'bench_*' -perm -u+x 2>/dev/null | sort); do echo "== $$b"; $$b || exit 1; done

bench-ort:
	@scripts/install-deps.sh run
	@JOBS=$(JOBS) scripts/bench-ort.sh $(if $(OUT),--out "$(OUT)") $(MODELS)

bench-llama:
	@scripts/install-deps.sh run
	@JOBS=$(JOBS) scripts/bench-llama.sh $(if $(OUT),--out "$(OUT)") $(MODELS)

bench-cuda: build
	@python3 bench/cuda/bench_cuda.py --berth build/berth $(MODELS)

bench-train:
	@scripts/install-deps.sh run
	@JOBS=$(JOBS) LLMC="$(LLMC)" scripts/bench-train.sh $(ARGS)

bench-python:
	@scripts/install-deps.sh run
	@cmake --preset bench -DBERTH_PYTHON=ON >/dev/null
	@cmake --build --preset bench --parallel $(JOBS) --target berth_python bench_python_one_op
	@$(PYTHON) bench/python/bench_python.py build/measure

format:
	find $(wildcard include src tools tests bench examples python) -name '*.[ch]' | xargs clang-format -i

lint:
	@cmake --preset clang >/dev/null
	@JOBS=$(JOBS) scripts/tidy.sh build/clang --deep

deps:
	@scripts/install-deps.sh run

clean:
	rm -rf build

help:
	@echo "make            build the library and build/berth"
	@echo "make run        install what is missing, build, plan and run the model that is built in"
	@echo "make train-demo train the digit model from its data, and a small model of characters on a play"
	@echo "make web        build berth for browsers and Node: the page and the package in build/web are plain files to serve"
	@echo "make serve      the same, and a server for it; PORT=8080"
	@echo "make check      install what is missing, build with gcc (sanitizers) and clang, run every test and clang-tidy"
	@echo "make check-ort  compare with ONNX Runtime on fresh inputs (it comes from npm, into build/ort)"
	@echo "make check-slow the tests of GPUs in full: what takes minutes where a CPU plays the GPU; TESTS='webgpu' restricts it"
	@echo "make wheel      a wheel of the Python package, for every Linux with the glibc that its name says: build/packages"
	@echo "make deb        Debian packages: the library, what programs are built with, the tool with its manual"
	@echo "make dist       an archive with a static berth for the CPU, which runs on any Linux"
	@echo "make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)"
	@echo "make bench      build and run the benchmarks; DNNL=1 measures kernels beside oneDNN's"
	@echo "make bench-ort  measure beside ONNX Runtime; MODELS='NAME...' restricts it, OUT=FILE keeps the table"
	@echo "make bench-llama measure language models beside llama.cpp; MODELS='NAME...' restricts it, OUT=FILE keeps the tables"
	@echo "make bench-cuda measure on an NVIDIA GPU beside Vulkan and PyTorch; MODELS='resnet50=FILE.onnx minilm=FILE.onnx,seq=128'"
	@echo "make bench-train measure steps of training of GPT-2 124M; LLMC=DIR (a checkout of llm.c) beside llm.c, ARGS='--steps 10'"
	@echo "make bench-python measure what a call from Python costs on top of C"
	@echo "make format     clang-format on every C file"
	@echo "make lint       clang-tidy on the library and the tool, with clang's analyzer"
	@echo "make deps       install what a build needs and this machine lacks"
	@echo "make clean      remove build/"
