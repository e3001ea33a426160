"""Every kind of model as a black box: scikit-learn, torch, ONNX, a file, an endpoint."""
