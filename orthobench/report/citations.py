"""BibTeX of the papers behind the models."""

PAPERS = {
    "scornn": """@inproceedings{helfrich2018scornn,
  title     = {Orthogonal Recurrent Neural Networks with Scaled {C}ayley Transform},
  author    = {Helfrich, Kyle and Willmott, Devin and Ye, Qiang},
  booktitle = {International Conference on Machine Learning},
  year      = {2018}
}""",
    "elman": """@article{elman1990finding,
  title   = {Finding Structure in Time},
  author  = {Elman, Jeffrey L.},
  journal = {Cognitive Science},
  volume  = {14},
  number  = {2},
  pages   = {179--211},
  year    = {1990}
}""",
    "irnn": """@article{le2015irnn,
  title   = {A Simple Way to Initialize Recurrent Networks of Rectified Linear Units},
  author  = {Le, Quoc V. and Jaitly, Navdeep and Hinton, Geoffrey E.},
  journal = {arXiv preprint arXiv:1504.00941},
  year    = {2015}
}""",
    "gru": """@inproceedings{cho2014gru,
  title     = {Learning Phrase Representations using {RNN} Encoder-Decoder for Statistical Machine Translation},
  author    = {Cho, Kyunghyun and van Merri{\\"e}nboer, Bart and Gulcehre, Caglar and Bahdanau, Dzmitry and
               Bougares, Fethi and Schwenk, Holger and Bengio, Yoshua},
  booktitle = {Conference on Empirical Methods in Natural Language Processing},
  year      = {2014}
}""",
    "lstm": """@article{hochreiter1997lstm,
  title   = {Long Short-Term Memory},
  author  = {Hochreiter, Sepp and Schmidhuber, J{\\"u}rgen},
  journal = {Neural Computation},
  volume  = {9},
  number  = {8},
  pages   = {1735--1780},
  year    = {1997}
}""",
}
MODELS = {"scornn": "scornn", "rnn": "elman", "irnn": "irnn", "gru": "gru", "lstm": "lstm"}
